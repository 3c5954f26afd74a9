/** Where Mutations wait that the server has not answered, so that they survive a page load. */

export interface StoredMutation {
  /** Ascends in the order in which the Mutations were called. */
  readonly operationId: string
  readonly function: string
  readonly target: string
  /** The whole request envelope. */
  readonly body: string
  /** Unix milliseconds. */
  readonly createdAtMillis: number
}

/**
 * A store of one user of the application: its Mutations are sent with the credentials of the
 * client that loads them.
 */
export interface MutationStore {
  load(): Promise<readonly StoredMutation[]>
  put(mutation: StoredMutation): Promise<void>
  remove(operationId: string): Promise<void>
}

/** Keeps Mutations as long as the object itself. */
export function memoryStore(): MutationStore {
  const stored = new Map<string, StoredMutation>()
  return {
    load: async () => [...stored.values()],
    put: async (mutation) => void stored.set(mutation.operationId, mutation),
    remove: async (operationId) => void stored.delete(operationId),
  }
}
