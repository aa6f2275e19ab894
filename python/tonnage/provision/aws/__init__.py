"""Launch: what a plan says is rented of AWS, made a fleet that jobs can run on, and ended again.

``price`` is what it costs, ``request`` what EC2 is asked, ``node`` what is done on a node: pure.
``ec2`` asks, ``reach`` has commands carried out on nodes, ``launching`` goes step by step,
``ending`` ends all, ``status`` tells what stands. Everything that is rented has the launch's name
as a tag, and ends by itself at a set time; each step is on file before it is begun.

The design follows docs/concepts/launching.md.
"""
