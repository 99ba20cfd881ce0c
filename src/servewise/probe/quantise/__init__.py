"""What fewer bits cost in quality: settings, passages and tasks, the bench that compares, the log that resumes."""
