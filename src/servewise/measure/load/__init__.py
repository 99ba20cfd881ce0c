"""The load: prompts of known length, bodies, and schedules that say what is sent when. No clock, no socket."""
