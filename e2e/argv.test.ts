import { expect, test } from 'vitest'
import { argv } from './argv.ts'

test('white space of any length separates words', () => {
  const line = argv`
    release --root here
      --channel  production
  `
  expect(line).toEqual(['release', '--root', 'here', '--channel', 'production'])
  expect(argv``).toEqual([])
})

test('an interpolated text stays within its word, with its spaces and also if it is empty', () => {
  const [path, none] = ['/a b/c', '']
  expect(argv`init --root ${path} --name=${path}/d ${none} ${none}`).toEqual([
    'init',
    '--root',
    '/a b/c',
    '--name=/a b/c/d',
    '',
    '',
  ])
})

test('an interpolated list adds each of its words', () => {
  const root = ['--root', '/a b']
  expect(argv`status ${root} --json ${[]}`).toEqual(['status', '--root', '/a b', '--json'])
})

test('an interpolated list cannot be part of a word', () => {
  const root = ['--root', '/a']
  expect(() => argv`status x${root}`).toThrow('white space on both sides')
  expect(() => argv`status ${root}x`).toThrow('white space on both sides')
})
