/** The first argument that turns the executable into an application process. */
export const APPLICATION_PROCESS_ARGUMENT = '__application-process'
