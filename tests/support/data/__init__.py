"""Made-up records: measurements, offers, runs; and files with errors in them."""
