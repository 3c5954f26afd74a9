import { Client } from 'pg'
import { expect, test } from 'vitest'
import { freshDatabase } from './postgres.ts'

async function scalar(url: string, sql: string): Promise<string> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const result = await client.query({ text: sql, rowMode: 'array' })
    return String(result.rows[0]?.[0])
  } finally {
    await client.end()
  }
}

test('a test database is empty and belongs to a durable PostgreSQL 18', async () => {
  const database = await freshDatabase()
  expect(await scalar(database.url, 'show server_version_num')).toMatch(/^18/)
  expect(await scalar(database.url, 'show fsync')).toBe('on')
  expect(await scalar(database.url, 'show listen_addresses')).toBe('127.0.0.1')
  const tables = "select count(*) from information_schema.tables where table_schema = 'public'"
  expect(await scalar(database.url, tables)).toBe('0')
  await database.drop()
  await expect(scalar(database.url, 'select 1')).rejects.toThrow('does not exist')
})

test('a wrong password is rejected', async () => {
  const database = await freshDatabase()
  const url = new URL(database.url)
  url.password = 'wrong'
  await expect(scalar(url.href, 'select 1')).rejects.toThrow('password authentication failed')
  await database.drop()
})

test('a template is prepared once, and its clones are independent', async () => {
  let prepared = 0
  const template = {
    name: `template ${crypto.randomUUID()}`,
    prepare: async (url: string) => {
      prepared += 1
      await scalar(url, 'create table things (name text)')
    },
  }
  const [first, second] = await Promise.all([freshDatabase(template), freshDatabase(template)])
  await scalar(first.url, "insert into things values ('x') returning name")
  expect(await scalar(first.url, 'select count(*) from things')).toBe('1')
  expect(await scalar(second.url, 'select count(*) from things')).toBe('0')
  expect(prepared).toBe(1)
  await Promise.all([first.drop(), second.drop()])
})
