"""Launch a plan's candidate on AWS as a cluster that runs jobs, and terminate it.

`requests` builds EC2 requests, `ec2` sends them, `launcher` goes step by step, `teardown`
terminates everything, `status` shows what exists. Everything rented is tagged with the launch's
name and terminates by itself at a set time; each step is recorded before it starts. See
docs/concepts/launching.md.
"""
