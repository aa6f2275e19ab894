"""The whole loop: measure, model, plan, run, report; on one machine and on a cluster."""
