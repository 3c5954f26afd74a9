/**
 * @module-tag slow
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ADDRESS, backedUpServer, HISTORY } from '../../../testing/backups/backed-up-server.ts'
import { findHistory } from './sources.ts'

test('the newest history with a whole backup is restored by default', async () => {
  const server = await backedUpServer('sqlite')
  try {
    const { target } = server.parts
    const { environmentId } = ADDRESS
    await server.base()
    // A restored server that was lost before its first whole backup has begun it.
    const later = 'hst_00000000000000000000000002'
    mkdirSync(join(target.location, environmentId, later))
    const found = (historyId: string | null) =>
      findHistory(target, { environmentId: null, historyId })
    expect(await found(null)).toEqual({ environmentId, historyId: HISTORY })
    expect(await found(later)).toEqual({ environmentId, historyId: later })
  } finally {
    await server.dispose()
  }
})
