/** The port for a store of pending Mutations, so that they survive a page load. */

export interface StoredMutation {
  /** The operation ID. IDs ascend in the order of the calls. */
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

/** A store in memory, which keeps Mutations as long as the object exists. */
export function memoryStore(): MutationStore {
  const stored = new Map<string, StoredMutation>()
  return {
    load: async () => [...stored.values()],
    put: async (mutation) => void stored.set(mutation.operationId, mutation),
    remove: async (operationId) => void stored.delete(operationId),
  }
}
