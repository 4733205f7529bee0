import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * The leader of Apache Kafka's Java client: GROUP ANSWER STRATEGY UNTIL BUDGET COUNT. Reads, writes and prints
 * what python_leaders.py does; a run is what ConsumerCoordinator.onLeaderElected does with the members' bytes.
 * CPU is that of the calling thread, without the compiler's and the collector's; memory is the heap's peak
 * in the first run less what was in use before.
 */
public final class Leader {
    private static final double LONG = 30;
    private static final int ENOUGH = 500;

    private record Member(String id, Optional<String> instance, ByteBuffer subscription) {}

    private record Run(double decode, double assign, double encode, double cpu) {
        double all() {
            return decode + assign + encode;
        }
    }

    private final ConsumerPartitionAssignor assignor;
    private final Cluster cluster;
    private final List<Member> members;
    private Map<String, ByteBuffer> answer;

    private Leader(ConsumerPartitionAssignor assignor, Cluster cluster, List<Member> members) {
        this.assignor = assignor;
        this.cluster = cluster;
        this.members = members;
    }

    private Run run(ThreadMXBean threads) {
        answer = null;
        long cpu = threads.getCurrentThreadCpuTime();
        long start = System.nanoTime();
        Set<String> topics = new HashSet<>();
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (Member member : members) {
            Subscription subscription = ConsumerProtocol.deserializeSubscription(member.subscription().duplicate());
            subscription.setGroupInstanceId(member.instance());
            subscriptions.put(member.id(), subscription);
            topics.addAll(subscription.topics());
        }
        long read = System.nanoTime();
        Map<String, Assignment> assigned =
            assignor.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        long planned = System.nanoTime();
        Map<String, ByteBuffer> bytes = new HashMap<>();
        for (Map.Entry<String, Assignment> each : assigned.entrySet())
            bytes.put(each.getKey(), ConsumerProtocol.serializeAssignment(each.getValue()));
        long end = System.nanoTime();
        cpu = threads.getCurrentThreadCpuTime() - cpu;
        answer = bytes;
        return new Run((read - start) / 1e9, (planned - read) / 1e9, (end - planned) / 1e9, cpu / 1e9);
    }

    public static void main(String[] arguments) throws IOException {
        double until = Double.parseDouble(arguments[3]);
        double budget = Double.parseDouble(arguments[4]);
        int count = Integer.parseInt(arguments[5]);
        Leader leader = read(Path.of(arguments[0]), make(arguments[2]));
        long began = System.currentTimeMillis();

        System.gc();
        long before = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) pool.resetPeakUsage();
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        List<Run> runs = new ArrayList<>();
        runs.add(leader.run(threads));
        double memory = (heapPeak() - before) / 1024.0 / 1024.0;
        while (another(runs, (System.currentTimeMillis() - began) / 1e3, until, budget, count))
            runs.add(leader.run(threads));
        leader.write(Path.of(arguments[1]));

        List<String> told = new ArrayList<>();
        for (Run run : runs)
            told.add(String.format(Locale.ROOT, "[%.9f, %.9f, %.9f, %.9f]",
                run.decode(), run.assign(), run.encode(), run.cpu()));
        System.out.printf(Locale.ROOT,
            "{\"runs\": [%s], \"memory\": %.1f, \"versions\": {\"kafka-clients\": \"%s\", \"java\": \"%s\"}}%n",
            String.join(", ", told), memory, AppInfoParser.getVersion(), System.getProperty("java.version"));
    }

    private static boolean another(List<Run> runs, double since, double until, double budget, int count) {
        double longest = runs.stream().mapToDouble(Run::all).max().orElseThrow();
        if (since + 1.2 * longest > until) return false;
        if (longest > LONG) return runs.size() < 2;
        double warm = runs.stream().skip(1).mapToDouble(Run::all).sum();
        return runs.size() - 1 < count || warm < budget && runs.size() - 1 < ENOUGH;
    }

    private static ConsumerPartitionAssignor make(String strategy) {
        return switch (strategy) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(strategy);
        };
    }

    private static long heapPeak() {
        long sum = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
            if (pool.getType() == MemoryType.HEAP) sum += pool.getPeakUsage().getUsed();
        return sum;
    }

    private static Leader read(Path path, ConsumerPartitionAssignor assignor) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(path), 1 << 20))) {
            Cluster cluster = readCluster(in);
            List<Member> members = new ArrayList<>();
            for (int left = in.readInt(); left > 0; left--) {
                String id = in.readUTF();
                String instance = in.readUTF();
                byte[] subscription = in.readNBytes(in.readInt());
                members.add(new Member(
                    id, instance.isEmpty() ? Optional.empty() : Optional.of(instance), ByteBuffer.wrap(subscription)));
            }
            return new Leader(assignor, cluster, members);
        }
    }

    private static Cluster readCluster(DataInputStream in) throws IOException {
        Map<String, Node> brokers = new LinkedHashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        for (int left = in.readInt(); left > 0; left--) {
            String topic = in.readUTF();
            int size = in.readInt();
            int racks = in.readInt();
            for (int partition = 0; partition < size; partition++) {
                Node[] replicas = new Node[Math.max(racks, 1)];
                for (int replica = 0; replica < replicas.length; replica++) {
                    String rack = racks == 0 ? null : in.readUTF();
                    int next = brokers.size() + 1;
                    replicas[replica] = brokers.computeIfAbsent(
                        String.valueOf(rack), name -> new Node(next, "host", 9092, rack));
                }
                partitions.add(new PartitionInfo(topic, partition, replicas[0], replicas, replicas));
            }
        }
        return new Cluster("cluster", brokers.values(), partitions, Collections.emptySet(), Collections.emptySet());
    }

    private void write(Path path) throws IOException {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)))) {
            out.writeInt(answer.size());
            for (Map.Entry<String, ByteBuffer> each : answer.entrySet()) {
                byte[] assignment = new byte[each.getValue().remaining()];
                each.getValue().duplicate().get(assignment);
                out.writeUTF(each.getKey());
                out.writeInt(assignment.length);
                out.write(assignment);
            }
        }
    }
}
