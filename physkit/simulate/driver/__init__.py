"""The verbs `simulate` and `run`, and what the host does around them: files, growth, progress, stops."""
