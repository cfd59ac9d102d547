"""What every room needs and none owns: checks of arguments, files, threads, versions, and the
penalties that the doors share."""
