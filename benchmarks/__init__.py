"""Speed, side by side with the codes that users would otherwise reach for."""
