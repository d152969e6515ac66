"""What the site is made of beside its pages: reference, gallery, numbers, links."""
