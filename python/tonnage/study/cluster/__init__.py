"""The whole loop on a fleet: survey, measure, model, plan, run, report.

Each step is done by the commands that one would type, which are on record: each keeps its results
where the next one finds them, so that a study that was ended goes on with the step that it was in,
and any step can be repeated alone. Only what has no command is done here: who takes part (survey),
input written on the machines, and removed.

Machines of a type are measured all at once. On two of each type a sort is rehearsed, with as much
for each as the job has if all of that type do it: a run is a measurement, too, in which disks,
network and cores meet. The plan is made of nothing but what was measured here; of its candidates
the first counts that these machines can be, and have room to be.

Whatever ends a step early, the input and output that it had on machines are removed; after a kill
that is done by the command that goes on. One command at a time has the directory, and so do the
commands that it runs, which may outlive it when it is killed.
"""

from tonnage.study.cluster.loop import CALIBRATED, study_cluster
from tonnage.study.cluster.settings import ClusterStudySettings
from tonnage.study.cluster.survey import BYTES_A_MACHINE

__all__ = ["BYTES_A_MACHINE", "CALIBRATED", "ClusterStudySettings", "study_cluster"]
