import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeWorkspace } from '../new-workspaces.ts'
import { loadTypeChecker } from './checker-process.ts'

test('a check of 100 Functions is current after each change of one file', async () => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'svc-types-')))
  writeWorkspace(directory, { name: 'Chat' })
  const source = (i: number, field: string) =>
    `import { mutation, v } from 'svc'\nexport const run = mutation({\n  clients: ['public'],\n` +
    `  arguments: { id: v.id('messages') },\n  handler: async (ctx, { id }) => {\n` +
    `    await ctx.db.patch(id, { ${field}: ${i}n })\n    return await ctx.db.get(id)\n  },\n})\n`
  const files = Array.from({ length: 100 }, (_, i) => `functions/f${i}.ts`)
  for (const [i, file] of files.entries()) writeFileSync(join(directory, file), source(i, 'likes'))
  const functions = files.map((file, i) => {
    return { name: `f${i}.run`, kind: 'mutation', file, exported: 'run', secrets: [] } as const
  })
  const startedAt = performance.now()
  const check = await loadTypeChecker(directory)
  const loadedAt = performance.now()
  expect(check({ files, functions }).problems).toEqual([])
  const first = performance.now() - loadedAt
  const later = Array.from({ length: 10 }, (_, i) => {
    const wrong = i % 2 === 0
    writeFileSync(join(directory, files[50]!), source(i, wrong ? 'likez' : 'likes'))
    const beganAt = performance.now()
    expect(check({ files, functions }).problems).toHaveLength(wrong ? 1 : 0)
    return performance.now() - beganAt
  })
  const median = later.sort((a, b) => a - b)[5]!
  const [load, cold, warm] = [loadedAt - startedAt, first, median].map(Math.round)
  console.info(`type check of 100 Functions: load ${load} ms, first ${cold} ms, again ${warm} ms`)
  rmSync(directory, { recursive: true })
})
