"""What a sweep computes: swept quantities, designs of points, members."""
