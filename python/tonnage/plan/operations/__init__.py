"""Plan storage for so many operations a second on so much data (-> `OperationsPlan`).

The question of "A Systematic Look at EC2 I/O" (Rasmussen, Porter, Vahdat): which machines give so
many operations, and at what price. A node's own disks have the operations that others measured or
the provider documents (`local_disks`); volumes have what is provisioned for them, within the limits
of their kind and of the machine's link to them (`volumes`). `planner` compares both.
"""
