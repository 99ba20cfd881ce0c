"""StepShape -> StepTime: how long one step of a server takes, never below its physical floor."""
