"""What several verbs share: loading cases, choosing devices and recordings, printing."""
