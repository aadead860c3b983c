"""What a job needs beside itself: objects that others make for it, and that admission completes."""
