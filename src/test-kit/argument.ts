/** First argument of the process that hosts test environments. */
export const TEST_HOST_ARGUMENT = '__test-host'
