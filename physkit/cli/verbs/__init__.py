"""The other verbs of the command line, one file each."""
