/**
 * Files and a control database for a process that kills itself before its nth durable step: a file
 * operation of the artifacts, a statement that changes the database, or the end of a transaction.
 */
import type { ControlDatabase, ControlTx } from '../../src/storage/control/database.ts'
import { type Files, realFiles } from '../../src/storage/files.ts'

const deathAt = Number(process.argv[2])
let steps = 0

function step(): void {
  if (steps++ === deathAt) process.kill(process.pid, 'SIGKILL')
}

export const dyingFiles: Files = counted(realFiles)

/** Counts every call of a method of `target`, and of the handles that it opens, as a step. */
function counted<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name) {
      const value = Reflect.get(object, name) as unknown
      if (typeof value !== 'function') return value
      return async (...parameters: unknown[]) => {
        step()
        const result: unknown = await Reflect.apply(value, object, parameters)
        return name === 'open' ? counted(result as object) : result
      }
    },
  })
}

export function dyingControl(control: ControlDatabase): ControlDatabase {
  return new Proxy(control, {
    get(database, name) {
      const value = Reflect.get(database, name) as unknown
      if (name !== 'transaction') return (value as () => unknown).bind(database)
      return (body: (tx: ControlTx) => unknown) => {
        step()
        const result = database.transaction((tx) =>
          body({
            ...tx,
            run: (...parameters) => {
              step()
              const changes = tx.run(...parameters)
              step()
              return changes
            },
          }),
        )
        step()
        return result
      }
    },
  })
}
