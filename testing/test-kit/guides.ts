/** The examples of the guide of tests, which name the runner that runs them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../build/bundle.ts'
import { assert } from '../../src/errors/assert.ts'
import { codeBlocks } from '../markdown/markdown.ts'

export function guideExample(runner: 'vitest' | 'bun' | 'node'): string {
  const guide = readFileSync(join(ROOT, 'src/docs/testing.md'), 'utf8')
  const found = codeBlocks(guide).find(({ above }) => above === `<!-- runner: ${runner} -->`)
  assert(found !== undefined, `the guide has no example for ${runner}`)
  return found.text
}
