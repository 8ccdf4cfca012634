"""What happens later: schedules that fire, and alerts that are sent. Rows say when; a sweep looks."""
