/**
 * A process that rotates the keys of a root and kills itself before its nth step. Steps are each
 * write of the keyring file, the moment between writing its temporary file and renaming it, and
 * each statement that changes the control database.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rotateKeys } from '../../src/product/environments/key-rotation.ts'
import type { ControlDatabase, ControlTx } from '../../src/storage/control/database.ts'
import { type KeyringFiles, keyringFiles } from '../../src/storage/keyring-files.ts'
import { openProductRoot } from '../../src/storage/root.ts'
import { realSystem } from '../../src/system/system.ts'
import { formatKeyring } from '../../src/value/product-root.ts'

const [directory = '', deathAt] = process.argv.slice(2)
let steps = 0
function step(): void {
  if (steps++ === Number(deathAt)) process.kill(process.pid, 'SIGKILL')
}

const system = realSystem()
const root = await openProductRoot(directory, system)
const real = keyringFiles(directory)
const files: KeyringFiles = {
  read: real.read,
  write(keyring) {
    step()
    const unfinished = join(directory, '.keyring.json.0123456789ab.tmp')
    writeFileSync(unfinished, formatKeyring(keyring), { mode: 0o600 })
    step()
    real.write(keyring)
    step()
  },
}
const control = new Proxy(root.control, {
  get(database, name) {
    if (name !== 'transaction') return Reflect.get(database, name) as unknown
    return (body: (tx: ControlTx) => unknown) => {
      step()
      const result = database.transaction((tx) => {
        const stepping: ControlTx['run'] = (...parameters) => {
          step()
          const changed = tx.run(...parameters)
          step()
          return changed
        }
        return body({ ...tx, run: stepping })
      })
      step()
      return result
    }
  },
}) as ControlDatabase
rotateKeys({ system, root: { ...root, control }, files })
process.stdout.write('rotated\n')
process.exit(0)
