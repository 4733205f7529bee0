"""Consumer groups without Kafka: both protocols in virtual time, real assignors, real bytes."""
