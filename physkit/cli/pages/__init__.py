"""Pages of HTML that `physkit report` writes."""
