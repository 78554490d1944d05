"""What a trained run says of images."""
