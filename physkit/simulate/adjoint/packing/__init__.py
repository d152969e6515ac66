"""Steps as loops on a GPU repeat them: derivatives keep few arrays, take few sums, and take few launches."""
