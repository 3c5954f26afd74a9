/**
 * Settings of arktype. It reads them while it loads, so this module is imported before it. They
 * hold for every schema: no object takes a field that it does not declare, and nothing is compiled
 * before it is used (`read` compiles), which halves the time that arktype takes to load.
 */
import { configure } from 'arktype/config'
import { isRule } from '../rules.ts'

configure({
  onUndeclaredKey: 'reject',
  jitless: true,
  maxLength: { description: ({ rule }) => `at most ${rule} entries` },
  predicate: { description: ({ predicate }) => (isRule(predicate) ? predicate.expected : 'valid') },
})
