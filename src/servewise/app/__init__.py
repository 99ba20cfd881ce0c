"""The page: forms that write command lines, and the answers drawn as the reports draw them. Holds no arithmetic."""
