"""Steps of electromagnetic fields."""
