import time
from kafka_assignors import *
from kafka_assignors.coordinator.simulator.simulation import Simulation
for A in (RangeAssignor,StickyAssignor,CooperativeStickyAssignor):
    s=Simulation({"t":12},[A],seed=1)
    for n in "abc": s.join(n, instance_id=f"i{n}")
    print({k:len(v) for k,v in s.run_until_stable().items()}, s.now, s.group.generation)
    s.join("d"); print({k:len(v) for k,v in s.run_until_stable().items()}, s.now, s.group.generation)
    s.members["b"].crash(); print({k:len(v) for k,v in s.run_until_stable().items()}, s.now, s.group.generation)
    s.members["d"].leave(); print({k:len(v) for k,v in s.run_until_stable().items()}, s.now, s.group.generation)
    s.restart("c"); print({k:len(v) for k,v in s.run_until_stable().items()}, s.now, s.group.generation)
    s.grow("t",16); s.run(310); print({k:len(v) for k,v in s.run_until_stable().items()}, s.now, s.group.generation)
    t=s.timeline; t.assert_never_owned_twice()
    print([(c.time_ms,c.trigger) for c in s.group.causes])
