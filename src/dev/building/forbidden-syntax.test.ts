/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are code. */
import { expect, test } from 'vitest'
import { findForbiddenSyntax } from './forbidden-syntax.ts'

const ALLOWED = [
  '"import(x)"',
  "'import.meta'",
  '`import(x) ${a} import(y)`',
  '`${`${{ a: 1 }}import(x)`} import.meta`',
  '// import(x)\n/* import(y) */',
  'a=/import(x)/.test(b)',
  'return/[/"]import(x)/g',
  'if(a)/"import(x)/.test(b)',
  'x.import(y),x?.import(y),this.#import(y)',
  'class A{import(file){}async import(){}static #import(){}}',
  'var o={import:1,import(a,b){return a}}',
  'important(x),reimport(x),import$(x)',
  '"\\"import(x)"+a',
  'a++/b/"import(x)"',
]

const FORBIDDEN: readonly [string, number][] = [
  ['import(x)', 0],
  ['await import ( x )', 6],
  ['[...import(x)]', 4],
  ['a/b;import(x)/c', 4],
  ['`${import(x)}`', 3],
  ['a=b/c/import(x)', 6],
  ['(a)/b+import(x)/d', 6],
  ['x[0]/import(x)', 5],
  ['"a"/import(x)', 4],
  ['import.meta.url', 0],
  ['new URL("a",import . meta.url)', 12],
  ['{let a=1}/"/.test(b);import(x)', 21],
  ['a++/import(x)', 4],
  ['typeof/"/.exec(b);import(x)', 18],
]

test.each(ALLOWED)('text that only looks like an import is accepted: %s', (code) => {
  expect(findForbiddenSyntax(code)).toEqual([])
})

test.each(FORBIDDEN)('an import in a bundle is found: %s', (code, offset) => {
  expect(findForbiddenSyntax(code).map((found) => found.offset)).toEqual([offset])
})
