/**
 * Settings of arktype for every schema. It reads them while it loads, so this module is imported
 * before it. No object takes a field that it does not declare. Types are no code until read.ts
 * compiles them, which halves the time that arktype takes to load.
 */
import { configure } from 'arktype/config'
import { isRule } from '../rules.ts'

configure({
  onUndeclaredKey: 'reject',
  jitless: true,
  maxLength: { description: ({ rule }) => `at most ${rule} entries` },
  predicate: { description: ({ predicate }) => (isRule(predicate) ? predicate.expected : 'valid') },
})
