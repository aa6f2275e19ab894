"""What a plan's machines have: prices and advertised rates, volumes, and how long they start."""
