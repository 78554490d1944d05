"""Tables of images with candidate sets, and the votes that make them."""
