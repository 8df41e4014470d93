"""Models that PyTorch wrote under the names of Hugging Face and torchvision."""
