"""Tool calling for models without it: functions from `Model` to `Model`; the choice of style."""
