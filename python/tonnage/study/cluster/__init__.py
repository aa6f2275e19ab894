"""The whole loop on a cluster: survey, measure, model, plan, run, report.

Each step runs the commands that one would type, which are recorded: each writes its results where
the next one finds them, so that a study is resumed with the step that was interrupted, and any step
can be repeated alone. Only what has no command is done here: the choice of machines (survey), and
writing and removing the input.

Machines of a type are measured all at once. On two of each type a sort is rehearsed, with as much
for each as the job has if all of that type do it: a run is a measurement, too, in which disks,
network and cores work together. The plan uses nothing but what was measured here; the first of its
candidates counts that these machines can do, and have space for.

Whatever ends a step early, its input and output on the machines are removed; after a kill the next
command does so. One command at a time locks the directory, together with the commands that it runs,
which may outlive it when it is killed.
"""

from tonnage.study.cluster.settings import ClusterStudySettings
from tonnage.study.cluster.steps import CALIBRATED, study_cluster
from tonnage.study.cluster.survey import BYTES_A_MACHINE

__all__ = ["BYTES_A_MACHINE", "CALIBRATED", "ClusterStudySettings", "study_cluster"]
