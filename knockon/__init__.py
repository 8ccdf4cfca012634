"""The face of Knockon: the `knockon` command and the publishing client that other services import."""
