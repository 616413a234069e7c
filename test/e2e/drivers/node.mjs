// Connects to a server of test/e2e/drivers.sh as an application with node-postgres does: in every way in which a client logs in, and
// with a session of types, prepared statements, transactions, COPY, errors, notifications and cancellation.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import path from 'node:path'

// The packages lie where the script has installed them, or where Debian does.
const require = createRequire(path.join(process.env.DRIVERS_NODE, 'package.json'))
const pg = require('pg')
const optional = (name) => {
  try {
    return require(name)
  } catch (e) {
    if (e.code !== 'MODULE_NOT_FOUND') throw e
    return null
  }
}
const copyStreams = optional('pg-copy-streams')
const version = optional('pg/package.json')?.version ?? '8.8'
const [major, minor] = version.split('.').map(Number)
const binds = major > 8 || (major === 8 && minor >= 14)

const env = process.env
const read = (dir, file) => fs.readFileSync(path.join(dir, file), 'utf8')
const clear = (user) => ({ host: 'localhost', port: Number(env.DRIVERS_PORT), database: 'percodb', user, password: env.DRIVERS_PASSWORD, connectionTimeoutMillis: 60000 })
const encrypted = (user, more = {}) => ({ ...clear(user), ssl: { ca: read(env.DRIVERS_CERTS, 'ca.crt'), ...more } })

async function check(name, run) {
  try {
    await run()
  } catch (e) {
    console.log(`FAIL node-postgres: ${name}:`, e)
    process.exit(1)
  }
  console.log(`ok   node-postgres: ${name}`)
}

// connect returns a client, and the mechanism by which it has logged in.
async function connect(config) {
  const client = new pg.Client(config)
  let mechanism
  const send = client.connection.sendSASLInitialResponseMessage
  client.connection.sendSASLInitialResponseMessage = function (chosen, message) {
    mechanism = chosen
    return send.call(this, chosen, message)
  }
  await client.connect()
  return { client, mechanism: () => mechanism }
}

async function login(config, tls, mechanism) {
  const { client, mechanism: chosen } = await connect(config)
  const { rows } = await client.query('select current_user as user, ssl from pg_stat_ssl where pid = pg_backend_pid()')
  await client.end()
  assert.deepEqual({ ...rows[0], mechanism: chosen() }, { user: config.user, ssl: tls, mechanism })
}

// refused connects in vain. code is the server's SQLSTATE, or that of Node's TLS.
async function refused(config, code) {
  await assert.rejects(connect(config), (e) => {
    assert.equal(e.code, code, e)
    return true
  })
}

const session = (run) => async () => {
  const { client } = await connect({ ...encrypted('secured'), enableChannelBinding: binds })
  await run(client)
  await client.end()
}

const value = async (client, type, sent) => (await client.query(`select $1::${type} as v`, [sent])).rows[0].v

async function types(client) {
  const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  for (const [type, sent] of [
    ['int2', -32768], ['int4', 2147483647], ['int8', '-9223372036854775808'], ['float8', 1.0000000000000002], ['bool', true],
    ['text', 'it\'s\ta "text" \\ with Ünïcode 🙂\n'], ['text', null], ['numeric', '-12345678901234567890.123456789'], ['numeric', 'NaN'],
    ['timestamptz', new Date('2026-02-28T23:59:59.123Z')], ['bytea', all], ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['int[]', [1, null, -3]], ['text[]', ['a "quoted", {text} \\', null, '']],
  ]) {
    assert.deepEqual(await value(client, type, sent), sent, type)
  }
}

async function prepared(client) {
  for (let i = 0; i < 10; i++) {
    const { rows } = await client.query({ name: 'double', text: "select $1::int * 2 as n, $2 || '!' as text", values: [i, 'x'] })
    assert.deepEqual(rows, [{ n: 2 * i, text: 'x!' }])
  }
}

async function table(client, columns) {
  await client.query('drop table if exists of_node')
  await client.query(`create table of_node (${columns})`)
}

const count = async (client, want) => assert.equal((await client.query('select count(*) from of_node')).rows[0].count, String(want))
const fails = (client, code, text, values) => assert.rejects(client.query(text, values), { code })

async function transactions(client) {
  await table(client, 'id int primary key')
  await client.query('begin')
  await client.query('insert into of_node values ($1)', [1])
  await count(client, 1)
  await client.query('rollback')
  await count(client, 0)
  await client.query('begin isolation level serializable')
  await client.query('savepoint s')
  await fails(client, '23505', 'insert into of_node values (2), (2)')
  await fails(client, '25P02', 'select 1')
  await client.query('rollback to s')
  await client.query('insert into of_node values (3)')
  await client.query('commit')
  await count(client, 1)
}

async function copy(client) {
  await table(client, 'id int primary key, name text')
  const rows = Array.from({ length: 1000 }, (_, i) => `${i}\tname ${i}\n`)
  await pipeline(Readable.from(rows), client.query(copyStreams.from('copy of_node from stdin')))
  await count(client, 1000)
  let out = ''
  for await (const chunk of client.query(copyStreams.to('copy (select * from of_node order by id) to stdout'))) out += chunk
  assert.equal(out, rows.join(''))
  await assert.rejects(pipeline(Readable.from(['1\tone\n']), client.query(copyStreams.from('copy of_node from stdin'))), { code: '23505' })
  await count(client, 1000)
}

async function failures(client) {
  await table(client, 'id int primary key')
  await client.query('insert into of_node values (1)')
  await fails(client, '23505', 'insert into of_node values ($1)', [1])
  await fails(client, '22012', 'select 1 / $1::int', [0])
  await fails(client, '42P01', 'select * from no_such_table')
  await fails(client, '42601', 'selec 1')
  await count(client, 1)
}

async function notifications(client) {
  const received = new Promise((resolve) => client.once('notification', resolve))
  await client.query('listen of_node')
  await client.query("notify of_node, 'a payload'")
  assert.equal((await received).payload, 'a payload')
}

// cancelled has other connections cancel a statement, until it ends.
async function cancelled(client) {
  let done = false
  const query = new pg.Query('select pg_sleep(600)')
  const ended = new Promise((resolve) => {
    query.on('error', resolve)
    query.on('end', () => resolve(null))
  })
  ended.then(() => { done = true })
  client.query(query)
  while (!done) {
    new pg.Client(encrypted('secured')).cancel(client, query)
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 100))])
  }
  assert.equal((await ended)?.code, '57014')
}

console.log(`     node-postgres ${version}${binds ? '' : ', which has no channel binding'}`)
await check('SCRAM in the clear', () => login(clear('plain'), false, 'SCRAM-SHA-256'))
await check('SCRAM over TLS without channel binding', () => login(encrypted('secured'), true, 'SCRAM-SHA-256'))
if (binds) {
  await check('SCRAM with channel binding', () => login({ ...encrypted('secured'), enableChannelBinding: true }, true, 'SCRAM-SHA-256-PLUS'))
}
const certificate = { cert: read(env.DRIVERS_CERTS, 'client-certified.crt'), key: read(env.DRIVERS_CERTS, 'client-certified.key') }
await check('client certificate', () => login(encrypted('certified', certificate), true, undefined))
await check('wrong password', () => refused({ ...clear('plain'), password: 'wrong' }, '28P01'))
await check('wrong password over TLS', () => refused({ ...encrypted('secured'), password: 'wrong', enableChannelBinding: binds }, '28P01'))
await check('no TLS where it is demanded', () => refused(clear('secured'), '28000'))
await check('no client certificate', () => refused(encrypted('certified'), '28000'))
await check("the server's name is wrong", () => refused({ ...encrypted('secured'), host: '127.0.0.1' }, 'ERR_TLS_CERT_ALTNAME_INVALID'))
await check("the server's authority is wrong", () => refused(encrypted('secured', { ca: read(env.DRIVERS_OTHER, 'ca.crt') }), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'))
await check('types', session(types))
await check('prepared statements', session(prepared))
await check('transactions', session(transactions))
if (copyStreams) await check('copy', session(copy))
await check('errors', session(failures))
await check('notifications', session(notifications))
await check('cancel', session(cancelled))
