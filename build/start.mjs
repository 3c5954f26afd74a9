/** `npm start`: runs a complete service on this machine, from a fresh clone. */
import { BUN, checkMachine, ensureBuilt, ensurePackages, foreground } from './prepare.mjs'

checkMachine()
ensurePackages()
ensureBuilt()
process.exitCode = await foreground(BUN, ['build/quickstart.ts', ...process.argv.slice(2)])
