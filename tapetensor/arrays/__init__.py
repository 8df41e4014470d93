"""What an array may be: numpy's, another library's, a stand-in; its shape and its dtype."""
