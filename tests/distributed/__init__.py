"""Many ranks."""
