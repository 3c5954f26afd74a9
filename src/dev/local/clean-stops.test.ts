/**
 * The orderly shutdown of an Environment, as after Ctrl-C in `svc dev` or a stop of the server.
 *
 * @module-tag slow
 */
import { expect, onTestFinished, test } from 'vitest'
import { LocalDevelopment } from '../../../testing/development/local-development.ts'
import { readDocumentsSequence } from '../../storage/control/environment.ts'
import { openProductRoot } from '../../storage/root.ts'
import { realSystem } from '../../system/system.ts'

test('a stop right after a commit records that commit, and reports no failure', async () => {
  const dev = new LocalDevelopment()
  onTestFinished(() => dev.dispose())
  await dev.start()
  const { metadata } = await dev.call('notes.add', { text: 'kept' }, { kind: 'mutation' })
  await dev.stop()
  expect(dev.events.filter(({ event }) => event === 'notice')).toEqual([])
  const root = await openProductRoot(dev.root, realSystem())
  onTestFinished(() => root.close())
  expect(String(root.control.read(readDocumentsSequence))).toBe(metadata?.commitSequence)
})
