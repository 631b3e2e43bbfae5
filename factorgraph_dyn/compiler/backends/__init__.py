"""Programs become code, a folder a back end."""
