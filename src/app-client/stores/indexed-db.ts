/** Keeps Mutations in the IndexedDB of a browser. */
import type { MutationStore, StoredMutation } from './mutation-store.ts'

const OBJECTS = 'mutations'

/** Opens the database `name`. Name the user in it, so that no other user sends the Mutations. */
export function indexedDbStore(name: string): MutationStore {
  let opened: Promise<IDBDatabase> | null = null
  const database = (): Promise<IDBDatabase> => {
    opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(name, 1)
      request.onupgradeneeded = () => {
        request.result.createObjectStore(OBJECTS, { keyPath: 'operationId' })
      }
      // The browser closes the database when its user deletes site data; it is opened again.
      const forget = () => {
        opened = null
      }
      request.onsuccess = () => {
        request.result.onclose = forget
        resolve(request.result)
      }
      request.onerror = () => {
        forget()
        reject(request.error)
      }
    })
    return opened
  }
  /** Resolves once the transaction is durable. */
  const run = async <T>(
    mode: IDBTransactionMode,
    act: (objects: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> => {
    const transaction = (await database()).transaction(OBJECTS, mode, { durability: 'strict' })
    const request = act(transaction.objectStore(OBJECTS))
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result)
      transaction.onabort = () => reject(transaction.error)
    })
  }
  return {
    load: () => run('readonly', (objects) => objects.getAll() as IDBRequest<StoredMutation[]>),
    put: async (mutation) => void (await run('readwrite', (objects) => objects.put(mutation))),
    remove: async (id) => void (await run('readwrite', (objects) => objects.delete(id))),
  }
}
