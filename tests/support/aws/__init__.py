"""AWS for the tests: moto's server, launches, and a script that answers for ssh."""
