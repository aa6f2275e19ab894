"""Kinds of jobs as rows of demands; one file a kind.

A row names its source: a document's equation, or what follows from how the job is built. A job
that was watched (`tonnage observe`) brings a row of its own.
"""
